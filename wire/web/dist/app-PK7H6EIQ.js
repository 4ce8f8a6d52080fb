import{cd as r}from"./chunk-BTJADNQE.js";r();
