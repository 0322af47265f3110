"""Laws known exactly: tables, Ising and Potts on any graph, mixtures, Markov chains, random tables, a grammar."""
