//! libFuzzer's entry to the target `local_heap`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::local_heap(data));
