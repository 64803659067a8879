"""A lock with redis-py: any Redis client speaks to a node.

    python deploy.py [PORT]
"""

import sys

import redis

# One connection, because a lock belongs to the session of its connection.
port = int(sys.argv[1]) if len(sys.argv) > 1 else 7600
node = redis.Redis(port=port, single_connection_client=True, decode_responses=True)

node.execute_command("SESSION", "OPEN", "TTL", 10_000, "LABEL", "deploy.py")
fence = node.execute_command("LOCK", "deploy", "WAIT", 10_000, "REASON", "release 7")
if fence is None:
    sys.exit("the wait ended")
try:
    print("inside with fence", fence)
    try:
        node.execute_command("LOCK", "deploy")
    except redis.ResponseError as error:
        print("once more is refused:", str(error).split()[0])
    print("the node agrees:", node.execute_command("FENCE", "CHECK", "deploy", fence))
finally:
    node.execute_command("UNLOCK", "deploy", fence)
    node.execute_command("SESSION", "CLOSE")
