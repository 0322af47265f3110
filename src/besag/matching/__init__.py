"""Which sequences belong together, by the masked loss of the two as one."""
