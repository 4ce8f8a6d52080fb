import{a as o,b as r}from"./chunk-7GD5WDS5.js";import"./chunk-GMIYXIUL.js";import"./chunk-UB5SEN3B.js";import"./chunk-Q2ZMPXWS.js";export{r as NotificationFields,o as Notifications};
