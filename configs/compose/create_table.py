"""Make the thumbs table with its stream in DynamoDB Local; done already is fine. For docker-compose.yml only."""

from __future__ import annotations

import boto3

from rampgate.settings_sources import load_settings


def main() -> None:
    settings = load_settings()
    client = boto3.client("dynamodb", endpoint_url=settings.dynamodb_endpoint, region_name=settings.dynamodb_region)
    try:
        client.create_table(
            TableName=settings.thumbs_table,
            KeySchema=[{"AttributeName": settings.attribute_message_id, "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": settings.attribute_message_id, "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        )
    except client.exceptions.ResourceInUseException:
        return
    client.get_waiter("table_exists").wait(TableName=settings.thumbs_table)


if __name__ == "__main__":
    main()
