"""What `strandline demo pipeline` does and proves."""
