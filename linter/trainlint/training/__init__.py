"""What trainers share: declarations of released packages, limits as data, sharding, pydantic's conversions."""
