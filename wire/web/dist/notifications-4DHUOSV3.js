import{a as o,b as r}from"./chunk-JKOK2CMF.js";import"./chunk-MGWSFHYI.js";import"./chunk-D5XZCAHK.js";import"./chunk-BTOOL2ZJ.js";export{r as NotificationFields,o as Notifications};
