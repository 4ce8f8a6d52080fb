import{a as o}from"./chunk-D6FYP2QP.js";import"./chunk-N7HLEIBD.js";import"./chunk-4M4U3DWL.js";import"./chunk-65TW3HXW.js";export{o as Privacy};
