"""What a backend does, which one is in force, and the native one."""
