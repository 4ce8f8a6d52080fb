import{eb as r}from"./chunk-BTOOL2ZJ.js";r();
