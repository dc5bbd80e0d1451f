"""Which lanes, slot and recipes a design takes, so that each is compared at its best."""
