//! The memory allocator of a daemon, which gives back the memory of a large prompt when it is done.

use std::{hint::black_box, time::Duration};

/// The environment variables that a daemon is started with. Allocators read them before `main`, and the functions that
/// change the same settings later are not safe ones. Clients end before it matters, so they keep the defaults.
///
/// In the static build mimalloc then returns pages that have been free for 100 ms, see [`return_free_memory`]. To return them
/// at once would cost a third of the time of a prompt of 1 MiB, because the kernel clears the pages of each of its copies
/// anew. glibc maps each block from 256 KiB on by itself, a limit that otherwise grows to 32 MiB with the blocks that were
/// freed, and it spreads the others over two arenas instead of eight for each processor.
pub const ALLOCATOR_SETTINGS: &[(&str, &str)] = if cfg!(target_env = "musl") {
    &[("MIMALLOC_PURGE_DELAY", "100")]
} else {
    &[("MALLOC_ARENA_MAX", "2"), ("MALLOC_MMAP_THRESHOLD_", "262144"), ("MALLOC_TRIM_THRESHOLD_", "262144")]
};

/// The time to wait before [`return_free_memory`] after something was freed. It is longer than the 100 ms of
/// [`ALLOCATOR_SETTINGS`], before which mimalloc keeps the pages.
pub const FREE_FOR: Duration = Duration::from_millis(250);

/// Makes the allocator return what was freed at least [`FREE_FOR`] ago. mimalloc looks for such pages only when a block is freed
/// that has pages of its own, so this takes such a block and frees it. glibc needs no such call.
pub fn return_free_memory() {
    const BLOCK: usize = 1 << 20;
    if cfg!(target_env = "musl") {
        drop(black_box(Vec::<u8>::with_capacity(BLOCK)));
    }
}
