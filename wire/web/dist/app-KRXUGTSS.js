import{eb as r}from"./chunk-YVE65IM7.js";r();
