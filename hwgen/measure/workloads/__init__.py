"""What is made of measured cores: the cost of GEMMs on a grid of them, and a layer of a trained model."""
