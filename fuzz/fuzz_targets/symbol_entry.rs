//! libFuzzer's entry to the target `symbol_entry`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::symbol_entry(data));
