"""Adapters: observe and control agents written with third-party frameworks.

Rule: an adapter only translates framework hooks into SDK calls. Before a model call the agent waits while it
is paused and takes injected prompts; before a tool runs it calls `permit`; both results are recorded. There
is no second control path, and the framework is changed only through its public hooks. Each framework is
imported only by its adapter; a missing framework, or one whose hooks have changed, is refused at import with
a message (`framework`), never observed partially.

`course` is the shared part: one session built from a framework's callbacks. `wording` keeps texts within the
protocol's limits.
"""
