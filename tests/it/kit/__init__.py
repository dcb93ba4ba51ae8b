"""What tests share: servers, clients, and ways to ask them and to compare their replies."""
