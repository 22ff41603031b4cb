"""What is asked of the record afterwards: words shared by the folds, the derived store and the doors."""
