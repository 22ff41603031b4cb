"""A simulated mesh that shows every feature, through the public doors only."""
