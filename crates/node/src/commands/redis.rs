//! Commands of Redis that people try first and that a node does not have: the refusal says what to use. `docs/redis.md` has
//! the same table.

/// Where people read more.
const PAGE: &str = "docs/redis.md#commands";

/// Commands, and what to use instead of them.
#[rustfmt::skip]
const INSTEAD: &[(&[&str], &str)] = &[
    (&["SET", "SETNX", "SETEX", "PSETEX", "GETSET", "MSET", "MSETNX"], "LOCK for a lock, DECIDE for a value that is set once"),
    (&["GET", "MGET", "GETEX", "EXISTS", "TYPE", "STRLEN", "APPEND"], "GATE SHOW for a lock, ELECT LEADER for a leader's value"),
    (&["DEL", "UNLINK", "GETDEL"], "UNLOCK for a lock, JOB DELETE for a job, DECIDE FORGET for a decision"),
    (&["EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT", "PERSIST", "TTL", "PTTL"], "SESSION OPEN TTL for what a client holds, GATE CREATE LEASE for how long anybody may hold a gate"),
    (&["INCR", "INCRBY", "INCRBYFLOAT", "DECR", "DECRBY"], "the fence of LOCK for a number that only grows, GATE CREATE PERMITS to limit how many are inside"),
    (&["EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "SCRIPT", "FCALL", "FCALL_RO", "FUNCTION"], "LOCK and UNLOCK with a fence, which need no script, and MULTI for changes of jobs"),
    (&["LPUSH", "RPUSH", "LPUSHX", "RPUSHX", "XADD", "ZADD"], "FLOW APPLY for the queue, and JOB CREATE"),
    (&["LPOP", "RPOP", "BLPOP", "BRPOP", "LMPOP", "BLMPOP", "ZPOPMIN", "ZPOPMAX", "BZPOPMIN", "BZPOPMAX", "XREAD", "XREADGROUP"], "JOB TAKE with WAIT, and JOB DELETE when it is done"),
    (&["LMOVE", "BLMOVE", "RPOPLPUSH", "BRPOPLPUSH"], "JOB TAKE and JOB PASS"),
    (&["XACK", "XDEL", "LREM", "ZREM"], "JOB DELETE with the attempt that JOB TAKE answered"),
    (&["XCLAIM", "XAUTOCLAIM"], "JOB TAKE: the job of a worker that is gone waits again"),
    (&["XGROUP", "XTRIM", "LTRIM"], "FLOW APPLY, which says who takes from which queue"),
    (&["LLEN", "LRANGE", "LINDEX", "XLEN", "XRANGE", "XREVRANGE", "XPENDING", "XINFO", "ZCARD", "ZRANGE", "ZRANGEBYSCORE", "ZSCORE"], "JOB COUNT, JOB LIST and QUEUE SHOW"),
    (&["SADD", "SREM", "SPOP", "SRANDMEMBER", "SMEMBERS", "SISMEMBER", "SCARD"], "POOL CREATE, TAKE, GIVE and SHOW for things that clients take and give back"),
    (&["HSET", "HSETNX", "HMSET", "HGET", "HMGET", "HGETALL", "HDEL", "HEXISTS", "HINCRBY", "HKEYS", "HLEN"], "the body of a job for its data, and a database for all other data"),
    (&["PUBLISH", "SPUBLISH", "SSUBSCRIBE", "SUNSUBSCRIBE", "PUBSUB"], "GROUP SEND, and SUBSCRIBE group:NAME"),
    (&["WATCH", "UNWATCH"], "the attempt of a job: a unit of work is refused if the session no longer has the job"),
    (&["KEYS", "SCAN", "DBSIZE", "RANDOMKEY"], "GATE LIST, ELECT LIST, POOL LIST, QUEUE LIST and SESSION LIST"),
    (&["FLUSHALL", "FLUSHDB"], "GATE DELETE, POOL DELETE and FLOW DELETE"),
    (&["CONFIG", "ACL"], "the file of testigo up --config"),
    (&["WAIT", "WAITAOF", "SAVE", "BGSAVE", "BGREWRITEAOF", "LASTSAVE"], "no command: a change is answered when it is on disk, in a cluster at a majority"),
    (&["REPLICAOF", "SLAVEOF", "FAILOVER", "ROLE"], "CLUSTER STATUS, ADD and REMOVE"),
    (&["MONITOR", "SLOWLOG", "LATENCY", "MEMORY", "OBJECT", "TIME", "DEBUG"], "STATUS, TRACE and the metrics of the console"),
    (&["SHUTDOWN"], "SIGTERM to testigo up"),
];

/// What a refusal says of a command of Redis; nothing of any other word.
pub(super) fn instead(name: &str) -> Option<String> {
    let named = |(names, _): &&(&[&str], &str)| {
        let mut names = names.iter();
        names.any(|known| known.eq_ignore_ascii_case(name))
    };
    let row = INSTEAD.iter().find(named);
    row.map(|(_, instead)| format!("Redis has it; here use {instead} ({PAGE})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::table::COMMANDS;

    #[test]
    fn the_page_has_the_same_table() {
        let page = include_str!("../../../../docs/redis.md");
        let (_, table) = page.split_once("\n## Commands\n").unwrap();
        let rows: Vec<&str> = table
            .lines()
            .filter(|line| line.starts_with("| `"))
            .collect();
        let wanted = INSTEAD.iter().map(|(names, instead)| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("| {} | {instead} |", names.join(", "))
        });
        assert_eq!(rows, wanted.collect::<Vec<_>>());
    }

    #[test]
    fn a_command_is_named_once_and_is_none_of_the_nodes_own() {
        let mut names: Vec<&str> = INSTEAD
            .iter()
            .flat_map(|(names, _)| names.iter().copied())
            .collect();
        let count = names.len();
        names.extend(COMMANDS.iter().map(|row| row.name));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count + COMMANDS.len());
    }
}
