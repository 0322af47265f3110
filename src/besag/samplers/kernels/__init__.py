"""One file a kernel, and what several of them need. Importing `besag.samplers` registers them all."""
