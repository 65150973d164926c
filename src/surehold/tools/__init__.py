"""What a tool is. A tool is defined once; every way in is generated from that definition."""
