"""One module for each program that is asked; its class `Asked` is the driver."""
