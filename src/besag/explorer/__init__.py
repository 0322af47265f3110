"""The explorer: a page on which somebody who writes no Python asks a model, and sees what no other page shows.

Knows what its views need that no verb says in one piece, and which files the page is made of. Refuses to know HTTP
beyond its routes, and mathematics altogether: every number is a verb's. The page itself is `page/`, plain files that a
browser reads as they are.
"""
