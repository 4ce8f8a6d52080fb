import{ra as r}from"./chunk-YPMMC2JS.js";r();
