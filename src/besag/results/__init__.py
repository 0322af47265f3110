"""How results tell themselves: their status, words, aligned tables, pages, colours, data."""
