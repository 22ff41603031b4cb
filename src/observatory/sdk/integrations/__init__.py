"""Adapters: agents written with somebody else's framework, observed and controlled as our own are.

Law: an adapter only translates. Each hook of the framework becomes a word of the SDK: before a model is asked
the agent waits while it is paused and takes what was injected, before a tool runs it asks `permit`, and what
came of both is said. Nothing is governed in a second way, and nothing of the framework is changed but by its
own public hooks. A framework is imported by its adapter alone; one that is missing, or whose hooks
have changed, is refused at once with a sentence (`framework`), never observed by halves.

`course` is what they share: one session as a framework's callbacks tell it. `wording` keeps texts within the
protocol's limits.
"""
