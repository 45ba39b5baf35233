//! libFuzzer's entry to the target `superblock`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::superblock(data));
