"""Runs DynamoDB Local with streams, Amazon's own implementation of the API, in memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from rampgate.local.services.jars import DYNAMODB, find_java, jar_folder
from rampgate.local.services.ports import accepts
from rampgate.local.services.process import ChildProcess
from rampgate.local.services.service import PortService

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient

StreamView = Literal["NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY"]
REGION = "us-east-1"
_HEAP = "-Xmx256m"
_KEY = "local"


class DynamoDBLocal(PortService):
    """Loses its tables on stop, kill or restart. It listens on every address, because it has no option to choose
    one."""

    name: ClassVar[str] = "dynamodb"

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @staticmethod
    def credentials() -> dict[str, str]:
        """The environment of a program that uses it. It accepts any key, but the AWS SDKs need one."""
        return {
            "AWS_ACCESS_KEY_ID": _KEY,
            "AWS_SECRET_ACCESS_KEY": _KEY,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client(self) -> DynamoDBClient:
        import boto3

        return boto3.client(
            "dynamodb", REGION, endpoint_url=self.endpoint, aws_access_key_id=_KEY, aws_secret_access_key=_KEY
        )

    def streams(self) -> DynamoDBStreamsClient:
        import boto3

        return boto3.client(
            "dynamodbstreams", REGION, endpoint_url=self.endpoint, aws_access_key_id=_KEY, aws_secret_access_key=_KEY
        )

    def create_thumbs_table(self, name: str, view: StreamView = "NEW_AND_OLD_IMAGES") -> str:
        """Create a table keyed by the string MessageId, with a stream. Return the stream's ARN."""
        created = self.client().create_table(
            TableName=name,
            KeySchema=[{"AttributeName": "MessageId", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "MessageId", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": view},
        )
        return created["TableDescription"]["LatestStreamArn"]

    def _prepare(self, folder: Path) -> ChildProcess:
        jars = jar_folder(DYNAMODB)
        command = [str(find_java()), _HEAP, "-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:TieredStopAtLevel=1"]
        command += [f"-Djava.library.path={jars}", "-cp", f"{jars}{os.sep}*"]
        command += ["com.amazonaws.services.dynamodbv2.local.main.ServerRunner"]
        command += ["-inMemory", "-disableTelemetry", "-port", str(self.port)]
        return ChildProcess(self.name, command, folder)

    def _answers(self) -> bool:
        return accepts(self.port) and bool(self.client().list_tables(Limit=1))
