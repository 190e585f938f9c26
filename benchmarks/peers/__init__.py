"""What benchmarks compare with."""
