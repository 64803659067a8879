"""A lock with redis-py: any Redis client speaks to a node. A command runs while the lock is held, and is stopped before
another can have it.

    python deploy.py [PORT [COMMAND...]]
"""

import contextlib
import subprocess
import sys
import time

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

TTL = 10.0  # How long this program may be silent before the node gives the lock to another.
SURE = 0.9 * TTL  # Clocks differ: so long it certainly is ours after we were heard.
GRACE = 2.0  # How long the command may take to stop.

port = int(sys.argv[1]) if len(sys.argv) > 1 else 7600
command = sys.argv[2:] or ["true"]

# One connection, because a lock belongs to the session of its connection; and no retries, because a connection that comes
# back by itself has another session.
node = redis.Redis(
    port=port,
    single_connection_client=True,
    decode_responses=True,
    retry=Retry(NoBackoff(), 0),
    socket_connect_timeout=TTL / 4,
    socket_timeout=TTL / 4,
)


def stop(work):
    work.terminate()
    try:
        work.wait(GRACE)
    except subprocess.TimeoutExpired:
        work.kill()
        work.wait()


def run(fence, heard):
    """Runs the command, and renews the lock meanwhile. `heard` is when the node has heard of us, or later."""
    work = subprocess.Popen(command)
    while True:
        try:
            return work.wait(TTL / 4)
        except subprocess.TimeoutExpired:
            pass
        asked, why = time.monotonic(), "the node took it away"
        try:
            # Any command keeps the session alive. This one also says whether the lock is ours still.
            held = asked < heard + SURE - GRACE and node.execute_command("FENCE", "CHECK", "deploy", fence)
        except redis.RedisError as error:
            held, why = 0, error
        if held != 1:
            stop(work)
            sys.exit(f"the lock is lost: {why}")
        heard = asked


asked = time.monotonic()
node.execute_command("SESSION", "OPEN", "TTL", int(TTL * 1000), "LABEL", "deploy.py")
fence = None
give_up = asked + 10
while fence is None and asked < give_up:
    # Short waits, so that a node that is gone is noticed.
    asked = time.monotonic()
    fence = node.execute_command("LOCK", "deploy", "WAIT", 1_000, "REASON", "release 7")
if fence is None:
    sys.exit("the wait ended")
print("inside with fence", fence)
try:
    node.execute_command("LOCK", "deploy")
except redis.ResponseError as error:
    print("once more is refused:", str(error).split()[0])
print("the node agrees:", node.execute_command("FENCE", "CHECK", "deploy", fence), flush=True)
try:
    sys.exit(run(fence, asked))
finally:
    # Which gives the lock back, if it is ours still. A node that cannot be told finds out after the TTL.
    with contextlib.suppress(redis.RedisError):
        node.execute_command("SESSION", "CLOSE")
