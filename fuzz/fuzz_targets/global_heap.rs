//! libFuzzer's entry to the target `global_heap`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::global_heap(data));
