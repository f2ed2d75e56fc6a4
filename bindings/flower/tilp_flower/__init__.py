"""TiLP on Flower."""
