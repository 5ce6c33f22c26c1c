"""Plans changes of several routers from one mesh file, and makes them."""
