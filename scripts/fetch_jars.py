"""`make jars`: bring the jars of Apache Kafka and DynamoDB Local, and hold them against their checksums. Without Maven:
exit 1 under CI, a message elsewhere."""

from __future__ import annotations

import os
import sys

from rampgate.local.services.jars import DYNAMODB, KAFKA, check, jar_folder
from rampgate.local.services.process import ServiceUnavailable


def main() -> int:
    try:
        for jars in (KAFKA, DYNAMODB):
            check(jars, jar_folder(jars))
    except ServiceUnavailable as error:
        print(f"jars: {error}", file=sys.stderr)
        return 1 if os.environ.get("CI") else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
