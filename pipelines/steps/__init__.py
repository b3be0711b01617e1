"""The steps, each from products to a product, up to the warehouse. They call the other rooms and compute nothing."""
