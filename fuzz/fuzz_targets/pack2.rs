//! libFuzzer's entry to the target `pack2`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::pack2(data));
