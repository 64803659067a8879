//! What a measurement prints: the machine, and a table of bars and what was measured against them.

use std::fmt;
use std::fs;
use std::thread::available_parallelism;
use std::time::Instant;

/// What must be reached, in the unit in which it is printed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bar {
    AtLeast(f64, Unit),
    Above(f64, Unit),
    AtMost(f64, Unit),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    PerSecond,
    Seconds,
    Bytes,
    Ratio,
    Count,
}

impl Bar {
    fn is_met(self, measured: f64) -> bool {
        match self {
            Bar::AtLeast(bar, _) => measured >= bar,
            Bar::Above(bar, _) => measured > bar,
            Bar::AtMost(bar, _) => measured <= bar,
        }
    }

    fn unit(self) -> Unit {
        let (Bar::AtLeast(_, unit) | Bar::Above(_, unit) | Bar::AtMost(_, unit)) = self;
        unit
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bar::AtLeast(bar, unit) => write!(f, "≥ {}", unit.show(*bar)),
            Bar::Above(bar, unit) => write!(f, "> {}", unit.show(*bar)),
            Bar::AtMost(bar, unit) => write!(f, "≤ {}", unit.show(*bar)),
        }
    }
}

impl Unit {
    pub(crate) fn show(self, value: f64) -> String {
        const MEGA: f64 = 1e6;
        const MEBI: f64 = 1_048_576.0;
        match self {
            Unit::PerSecond if value >= MEGA => format!("{:.2} M/s", value / MEGA),
            Unit::PerSecond => format!("{:.0} k/s", value / 1e3),
            Unit::Seconds if value < 1e-4 => format!("{:.2} µs", value * 1e6),
            Unit::Seconds if value < 0.1 => format!("{:.1} ms", value * 1e3),
            Unit::Seconds => format!("{value:.2} s"),
            Unit::Bytes => format!("{:.0} MiB", value / MEBI),
            Unit::Ratio => format!("{value:.2}"),
            Unit::Count => format!("{value:.0}"),
        }
    }
}

/// The table in the making. A row is printed as soon as it is measured.
#[derive(Debug)]
pub(crate) struct Report {
    missed: usize,
}

impl Report {
    /// Prints the machine and the head of the table.
    pub(crate) fn begin(title: &str) -> Report {
        println!("{title}, on {}", machine());
        println!("{:<52} {:>12} {:>12}", "WHAT", "BAR", "MEASURED");
        Report { missed: 0 }
    }

    /// A bar and what was measured; `detail` says what a number alone does not.
    pub(crate) fn row(&mut self, what: &str, bar: Bar, measured: f64, detail: &str) {
        let word = if bar.is_met(measured) {
            "ok"
        } else {
            self.missed += 1;
            "MISSED"
        };
        let (bar, measured) = (bar.to_string(), bar.unit().show(measured));
        println!("{what:<52} {bar:>12} {measured:>12}  {word:<6} {detail}");
    }

    /// What was measured and has no bar.
    pub(crate) fn show(&mut self, what: &str, measured: f64, unit: Unit, detail: &str) {
        let measured = unit.show(measured);
        println!("{what:<52} {:>12} {measured:>12}  {:<6} {detail}", "", "");
    }

    /// Whether every bar was met.
    pub(crate) fn end(self) -> bool {
        match self.missed {
            0 => println!("every bar is met"),
            n => println!("{n} missed"),
        }
        self.missed == 0
    }
}

/// How long something took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) wall: f64,
    /// What all threads together spent computing; on a busy machine it is less than the wall time.
    processor: f64,
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (wall, processor) = (self.wall, self.processor);
        write!(f, "{wall:.2} s ({processor:.2} s of processor)")
    }
}

/// The fastest of so many times, and what it gave. Other work on the machine can only make a time
/// longer, so the shortest says most about the program.
pub(crate) fn fastest<T>(
    rounds: usize,
    mut work: impl FnMut() -> Result<T, String>,
) -> Result<(Taken, T), String> {
    let mut best: Option<(Taken, T)> = None;
    for _ in 0..rounds.max(1) {
        let (begin, processor) = (Instant::now(), processor_time());
        let made = work()?;
        let taken = Taken {
            wall: begin.elapsed().as_secs_f64(),
            processor: processor_time() - processor,
        };
        if best.as_ref().is_none_or(|(best, _)| taken.wall < best.wall) {
            best = Some((taken, made));
        }
    }
    best.ok_or_else(|| "nothing was measured".to_owned())
}

/// The processor time of this process so far, in seconds; 0 where the system does not say.
fn processor_time() -> f64 {
    /// Linux counts in hundredths whatever its timer does.
    const TICKS_PER_SECOND: f64 = 100.0;
    /// User time and system time, after the name that ends with a parenthesis.
    const FIELDS: std::ops::Range<usize> = 11..13;
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let (_, fields) = text.rsplit_once(") ").unwrap_or_default();
    let fields = fields.split(' ').take(FIELDS.end).skip(FIELDS.start);
    let ticks: f64 = fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    ticks / TICKS_PER_SECOND
}

/// The processor, how many cores, and how busy they are: a number means little without.
pub(crate) fn machine() -> String {
    let model = field("/proc/cpuinfo", "model name").unwrap_or("an unknown processor".into());
    let cores = available_parallelism().map_or(1, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("unknown").to_owned();
    format!("{model}, {cores} cores, load {load}")
}

/// The most memory that this process has ever held, in bytes.
pub(crate) fn memory_peak() -> Result<u64, String> {
    memory("self", "VmHWM")
}

/// The memory that a process holds now, in bytes.
pub(crate) fn memory_of(process: u32) -> Result<u64, String> {
    memory(&process.to_string(), "VmRSS")
}

fn memory(process: &str, name: &str) -> Result<u64, String> {
    let found = field(&format!("/proc/{process}/status"), name);
    let found = found.ok_or_else(|| format!("the system does not say {name}"))?;
    let kibibytes = found.split(' ').next().and_then(|n| n.parse::<u64>().ok());
    kibibytes
        .map(|n| n * 1024)
        .ok_or_else(|| format!("{name} is `{found}`, not a number of kB"))
}

/// The value of the first line `name: value` of a file.
fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}
