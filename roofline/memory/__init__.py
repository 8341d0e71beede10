"""KV-cache memory: layouts, paging and sharing, trace replay, and capacity as the serving engines compute it.

>>> from roofline.memory.pages import Prefix, share, split
>>> article = split([403, 96, 241, 30, 176], page_size=16)
>>> article.pages, article.held, article.slack
(61, 976, 30)
>>> share(article, Prefix(64, 3)).held
848
"""

from __future__ import annotations
