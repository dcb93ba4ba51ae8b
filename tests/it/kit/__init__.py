"""What tests share: servers, clients, and how to ask and compare them."""
