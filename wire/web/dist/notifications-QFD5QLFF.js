import{a as o,b as r}from"./chunk-VQ62CD6O.js";import"./chunk-PFR6XGJH.js";import"./chunk-74IXTQGT.js";export{r as NotificationFields,o as Notifications};
