"""What tests and benchmarks share: made-up courses and classes, a look at processes, a PostgreSQL server."""
