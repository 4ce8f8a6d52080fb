import{Cb as r}from"./chunk-VLV6FW3N.js";r();
