//! Attempts that become rare where they fail.

/// When something is tried that usually fails again once it has failed. After each failure, twice as
/// many calls do without. All ranks of a context ask and note the same, so that they try together.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// Calls that do without before the next attempt.
    waiting: u32,
    failures_in_a_row: u32,
}

/// Calls between attempts, at most: two to this power.
const WAITING_POWER_MAX: u32 = 6;

impl Attempts {
    pub(super) fn is_due(&mut self) -> bool {
        let is_due = self.waiting == 0;
        self.waiting = self.waiting.saturating_sub(1);
        is_due
    }

    pub(super) fn note(&mut self, has_succeeded: bool) {
        self.failures_in_a_row = match has_succeeded {
            true => 0,
            false => (self.failures_in_a_row + 1).min(WAITING_POWER_MAX),
        };
        self.waiting = (1 << self.failures_in_a_row) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_become_rare_where_they_fail() {
        let mut attempts = Attempts::default();
        let mut calls_until_due = || {
            let calls = 1 + (0..).take_while(|_| !attempts.is_due()).count();
            attempts.note(false);
            calls
        };
        let calls: Vec<_> = (0..9).map(|_| calls_until_due()).collect();
        assert_eq!(calls, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        attempts.note(true);
        assert!(attempts.is_due() && attempts.is_due());
    }
}
