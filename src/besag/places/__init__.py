"""Where: which places of a text are meant, what is filled in there, and the window of a long text around them."""
