"""Images and PDF documents: untrusted bytes become small pictures and text. Decoding libraries are imported only in the child process."""
