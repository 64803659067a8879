//! Shared registers, as an algorithm sees them.

/// What a register holds. `none` is 0 wherever a register may hold nothing, and a process or a room is its
/// number plus one.
pub type Word = u64;

/// The number of a register.
pub type RegisterId = usize;

/// Shared registers. Every access is atomic, and all accesses have one order that everybody sees: the
/// algorithms here store to one register and then load another, and an order that lets the load go first
/// breaks all of them.
///
/// There is no fetch-and-add: no algorithm here needs it. Only the sieve compares and exchanges.
pub trait Memory {
    /// Reads a register.
    fn load(&mut self, register: RegisterId) -> Word;

    /// Writes a register.
    fn store(&mut self, register: RegisterId, value: Word);

    /// Writes `new` where the register holds `old`; says whether it did.
    fn compare_exchange(&mut self, register: RegisterId, old: Word, new: Word) -> bool;
}
