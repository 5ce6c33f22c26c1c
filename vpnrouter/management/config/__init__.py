"""The write API `/SEMP/v2/config`: what a configuration says, and how it is changed while the router runs."""
