"""How results tell themselves: words, aligned tables, colours, data."""
