//! Packets of `probe net`, and which of them were answered. Pure.

/// First word of each packet; others are not answered.
const MARK: u64 = u64::from_le_bytes(*b"onbeat/1");

/// Shortest packet: mark, run, thread and number.
pub const SHORTEST: usize = 32;

/// Longest packet that an Ethernet device sends in one frame over IPv4.
pub const LONGEST: usize = 1_472;

/// Thread of a run that sends packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSender {
    pub run: u64,
    pub thread: u64,
}

impl PacketSender {
    /// Writes packet number `number`.
    #[inline(always)]
    pub fn write(self, number: u64, packet: &mut [u8]) {
        let words = [MARK, self.run, self.thread, number];
        packet.chunks_exact_mut(8).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
    }

    /// Number of an answer to this thread.
    #[inline(always)]
    pub fn number_in(self, packet: &[u8]) -> Option<u64> {
        let word = |at: usize| Some(u64::from_le_bytes(packet.get(at * 8..at * 8 + 8)?.try_into().ok()?));
        let own = word(0)? == MARK && word(1)? == self.run && word(2)? == self.thread;
        word(3).filter(|_| own)
    }
}

/// True for a packet of any run.
pub fn is_ours(packet: &[u8]) -> bool {
    packet.len() >= SHORTEST && packet.starts_with(&MARK.to_le_bytes())
}

/// Meaning of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketAnswer {
    /// To the packet that was sent last.
    InTime,
    /// To an earlier packet, whose time limit was over.
    Late { reordered: bool },
    /// To a packet that had its answer.
    Duplicate,
    /// To no packet that is known.
    Foreign,
}

/// Answers to the last 64 packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answered {
    /// Number of packets sent: the last has this number less 1.
    sent: u64,
    /// Bit n: packet `sent - 1 - n` has its answer.
    answered: u64,
    /// Number after that of the newest answered packet.
    newest: u64,
}

impl Answered {
    /// Number of the next packet, which counts as sent from now on.
    pub fn send(&mut self) -> u64 {
        self.answered <<= 1;
        self.sent += 1;
        self.sent - 1
    }

    /// Takes an answer to that packet.
    pub fn take(&mut self, number: u64) -> PacketAnswer {
        let Some(age) = self.sent.checked_sub(1).and_then(|last| last.checked_sub(number)) else {
            return PacketAnswer::Foreign;
        };
        // An answer that is older than the window counts as late: its packet counts as lost.
        let bit = if age < 64 { 1 << age } else { 0 };
        if self.answered & bit != 0 {
            return PacketAnswer::Duplicate;
        }
        self.answered |= bit;
        let reordered = number + 1 < self.newest;
        self.newest = self.newest.max(number + 1);
        if age == 0 { PacketAnswer::InTime } else { PacketAnswer::Late { reordered } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_known_by_its_run_and_thread() {
        let sender = PacketSender { run: 7, thread: 1 };
        let mut packet = [9; 40];
        sender.write(u64::MAX - 1, &mut packet);
        assert!(is_ours(&packet) && !is_ours(&packet[..31]) && !is_ours(&[0; 40]));
        assert_eq!(sender.number_in(&packet), Some(u64::MAX - 1));
        assert_eq!(PacketSender { run: 8, ..sender }.number_in(&packet), None);
        assert_eq!(PacketSender { thread: 0, ..sender }.number_in(&packet), None);
        assert_eq!((sender.number_in(&packet[..31]), sender.number_in(&[])), (None, None));
        assert_eq!(packet[32..], [9; 8]);
    }

    #[test]
    fn each_answer_is_in_time_late_out_of_order_or_a_duplicate() {
        let mut of = Answered::default();
        assert_eq!(of.take(0), PacketAnswer::Foreign, "nothing was sent");
        assert_eq!(of.send(), 0);
        assert_eq!((of.take(0), of.take(0)), (PacketAnswer::InTime, PacketAnswer::Duplicate));
        assert_eq!((of.send(), of.send(), of.send()), (1, 2, 3));
        assert_eq!(of.take(1), PacketAnswer::Late { reordered: false });
        assert_eq!(of.take(3), PacketAnswer::InTime);
        assert_eq!(
            (of.take(2), of.take(2)),
            (PacketAnswer::Late { reordered: true }, PacketAnswer::Duplicate)
        );
        assert_eq!(of.take(4), PacketAnswer::Foreign);
        assert_eq!((0..100).map(|_| of.send()).last(), Some(103));
        assert_eq!(of.take(5), PacketAnswer::Late { reordered: false });
        assert_eq!(of.take(u64::MAX), PacketAnswer::Foreign);
    }
}
