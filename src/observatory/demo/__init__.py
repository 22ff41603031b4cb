"""A simulated mesh of agents that shows every feature, through the public API only."""
