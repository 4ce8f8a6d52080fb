import{cd as r}from"./chunk-S45M3N2T.js";r();
