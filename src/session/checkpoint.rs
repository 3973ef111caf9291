//! Where a fold begins: at the checkpoint that an earlier one left.

use super::Session;
use crate::log::checkpoint;
use crate::surface::{Surface, SurfaceOptions, SurfaceSnapshot};

/// The largest surface that leaves a checkpoint, in bytes. What any model reads is smaller; a larger one would take the
/// drain longer to write (some ms a MiB) than it saves: its content has to be read either way.
const LARGEST_BYTES: usize = 1 << 20;

/// How many ancestors of a fork are asked.
const ANCESTORS: usize = 8;

impl Session {
    /// A surface to go on from that has seen at most `at_most` events: that of the newest checkpoint, or a new one.
    pub(super) fn begin_surface(&self, at_most: u64, options: SurfaceOptions) -> Surface {
        let core = self.core();
        if at_most < core.checkpoint_events {
            return Surface::new(options);
        }
        if let Some(surface) = self.load(self.state(), at_most, options) {
            self.state.set_checkpointed(surface.next_seq().get());
            return surface;
        }
        // A parent's checkpoint at or below the prefix is one of this session's history, too.
        let shared = at_most.min(self.state.header.prefix_len());
        let segments = core.segments(&self.state, &(0..shared)).unwrap_or_default();
        let from_ancestor = |segment: &crate::log::lineage::Segment| {
            self.load(&segment.session, segment.to.min(shared), options)
        };
        let found = segments.iter().rev().take(ANCESTORS).find_map(from_ancestor);
        found.unwrap_or_else(|| Surface::new(options))
    }

    fn load(
        &self,
        owner: &crate::log::tail::SessionState,
        at_most: u64,
        options: SurfaceOptions,
    ) -> Option<Surface> {
        let (len, bytes) = checkpoint::load(self.core(), owner, at_most)?;
        let snapshot: SurfaceSnapshot = serde_json::from_slice(&bytes).ok()?;
        let surface = Surface::from_snapshot(snapshot, options).ok()?;
        (surface.next_seq().get() == len).then_some(surface)
    }

    /// Leaves a checkpoint to the drain, when enough events came since the last one. `surface` must be one that has seen
    /// this session's events and no others, all of them published.
    pub(super) fn leave_checkpoint(&self, surface: &Surface) {
        let core = self.core();
        let len = surface.next_seq().get();
        let is_due = len.saturating_sub(self.state.checkpointed()) >= core.checkpoint_events;
        if !is_due || surface.bytes() > LARGEST_BYTES || core.checkpoints.waits_for(&self.state) {
            return;
        }
        // Tried is enough: what turns out to be too large is not encoded again at each call.
        self.state.set_checkpointed(len);
        if let Ok(bytes) = serde_json::to_vec(&surface.to_snapshot()) {
            core.checkpoints.leave(core, &self.state, len, bytes);
        }
    }
}
